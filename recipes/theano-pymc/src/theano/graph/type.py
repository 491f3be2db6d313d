"""theano.graph.type of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.type import (
    CDataType,
    CDataTypeConstant,
    CEnumType,
    EnumList,
    EnumType,
    Generic,
    Type,
    Type as CType,
    generic,
)
