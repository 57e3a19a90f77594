"""The features of the database, each with a proof that anybody may run.

    GET /capabilities         matrix()      every feature, supported or not
                              catalogue()   limits, statements, types, functions
    GET /capabilities/{name}  run_probe()   the proof of one, run now, in a scratch database

    steps                     a statement and its expected outcome, in one line
    open_transaction          transactions that overlap statement by statement
    run                       runs the steps of a probe until one fails
    statements … durability   the probes, by subject
    absent                    features that are not supported

Nothing here knows HTTP.
"""

from __future__ import annotations

from qserver.probes.catalogue import Catalogue as Catalogue
from qserver.probes.catalogue import catalogue as catalogue
from qserver.probes.matrix import Capability as Capability
from qserver.probes.matrix import matrix as matrix
from qserver.probes.matrix import run_probe as run_probe
from qserver.probes.run import Probe as Probe
from qserver.probes.run import ProbeResult as ProbeResult
from qserver.probes.steps import Step as Step
