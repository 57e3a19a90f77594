"""Several machines that serve the databases of one replicated log: who may answer, who owns what.

placement    which node owns which family: a function of one small value that all see
values       what nodes share, read and set by compare-and-set; commands do that, too
lease        for how long a node may answer, and when another may say that it does not
membership   keeps this node's lease, watches the others', changes the placement
owners       the nodes as owners of databases
node         from when on this node counts
part         it leads or follows, in the control plane
replicas     of databases that other nodes own
handover     a family is opened where nobody else may still answer for it
"""
