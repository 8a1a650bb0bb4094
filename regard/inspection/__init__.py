"""From a trace to an explanation, and the views that draw it.

import regard
from regard import inspection
trace = regard.load("runs/mine").trace("source text")
inspection.attention(trace).save("page.html")
"""

from regard.inspection.layer_lens import lens
from regard.inspection.maps import attention
from regard.inspection.probing import probe

__all__ = ["attention", "lens", "probe"]
