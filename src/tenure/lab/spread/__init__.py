"""Independent work over a corpus, by one process, several, or a cluster.

What comes back is the same to the byte whatever the engine: results travel, and are kept, as the same bytes, and are given in the order
of the jobs. A job that fails is a value that names it. Kept results serve again as long as their input and the code are what they were.
"""

from tenure.lab.spread.engines import ENGINES as ENGINES
from tenure.lab.spread.engines import Engine as Engine
from tenure.lab.spread.engines import Failed as Failed
from tenure.lab.spread.engines import Job as Job
from tenure.lab.spread.engines import engine_named as engine_named
from tenure.lab.spread.keep import Keep as Keep
from tenure.lab.spread.spread import spread as spread
