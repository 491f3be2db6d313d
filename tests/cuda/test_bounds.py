"""cuda/gpuarray-kernels.patch: the C array of a kernel's arguments has room for all arguments.

Without the patch, the code of GpuCAReduceCPY writes the last argument beyond the end of the array.
"""

import json

# For 1 to 3 dimensions, print the length of the array ``args`` in the C code, and the number of
# arguments that the code writes.
CODE = """
import json, re
import compile as stubs
stubs.start()
import graphs
from theano import scalar
from theano.gpuarray.elemwise import GpuCAReduceCPY
sizes = []
for ndim in (1, 2, 3):
    node = GpuCAReduceCPY(scalar.add, [0])(graphs.on_device(ndim)).owner
    code = node.op.c_code(node, "name", ["x"], ["z"], {"fail": "", "params": "context"})
    room = int(re.search(r"void \\*args\\[(\\d+)\\]", code).group(1))
    last = max(eval(index) for index in re.findall(r"(?<!\\*)args\\[([\\d+]+)\\] =", code))
    sizes.append([room, last + 1])
print(json.dumps(sizes))
"""


def test_kernels_have_room_for_all_arguments(run):
    done = run("-c", CODE, flags="floatX=float32")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert [room for room, _ in result] == [used for _, used in result] == [7, 9, 11]
