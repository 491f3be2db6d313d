"""theano.graph.type of Theano-PyMC: aliases of Theano's objects."""

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
