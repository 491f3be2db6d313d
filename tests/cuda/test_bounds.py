"""cuda/gpuarray-kernels.patch: C code has room for all arguments of kernels.

Without the patch, there is no room for the last argument.
"""

import json

CODE = """
import json, re
import compile as stubs
stubs.start()
import graphs
from theano import scalar
from theano.gpuarray.elemwise import GpuCAReduceCPY
found = []
for ndim in (1, 2, 3):
    node = GpuCAReduceCPY(scalar.add, [0])(graphs.on_device(ndim)).owner
    code = node.op.c_code(node, "name", ["x"], ["z"], {"fail": "", "params": "context"})
    room = int(re.search(r"void \\*args\\[(\\d+)\\]", code).group(1))
    last = max(eval(place) for place in re.findall(r"(?<!\\*)args\\[([\\d+]+)\\] =", code))
    found.append([room, last + 1])
print(json.dumps(found))
"""


def test_kernels_have_room_for_all_arguments(run):
    done = run("-c", CODE, flags="floatX=float32")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert [room for room, _ in result] == [used for _, used in result] == [7, 9, 11]
