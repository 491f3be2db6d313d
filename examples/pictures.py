"""Draw an optimized graph as SVG with graphviz's dot, and as a page with d3viz, without a network.

The program needs pydot (pip install pydot) and graphviz's dot. It writes into the working
directory.

Prints:
    graph.svg has Dot22 and Elemwise: True
    graph.html has Dot22 and Elemwise: True
    graph.html loads files of d3viz/ only: True
"""

import re
import sys
from pathlib import Path

import theano
import theano.tensor as T
from theano.d3viz import d3viz
from theano.printing import pydot_imported, pydot_imported_msg, pydotprint

if not pydot_imported:
    sys.exit(f"no pictures: {pydot_imported_msg}")
x, y = T.dmatrices("x", "y")
function = theano.function([x, y], T.exp(T.dot(x, y)) + 1)
picture, page = Path("graph.svg"), Path("graph.html")
pydotprint(function, outfile=str(picture), format="svg", print_output_file=False)
d3viz(function, str(page))
for file in (picture, page):
    text = file.read_text(encoding="utf-8")
    print(f"{file} has Dot22 and Elemwise:", "Dot22" in text and "Elemwise" in text)
urls = re.findall(r'(?:src|href)="(.*?)"', page.read_text(encoding="utf-8"))
are_local = all(url.startswith("d3viz/") and Path(url).is_file() for url in urls)
print("graph.html loads files of d3viz/ only:", bool(urls) and are_local)
