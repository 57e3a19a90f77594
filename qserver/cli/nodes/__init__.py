"""`qserver cluster up`, `status`, `move` and `drain`: nodes that share the databases of a log.

folder      what `up` keeps of a cluster on this machine: secrets, ports, where the log is
layout      which processes it has, and at which ports
process     one of these processes
starting    starts them, says how far it is, and stops them in order
up          the command
address     where the log of the other commands is
status      what nodes are, what they own, and whether they live
placing     moves a family, drains a node
commands    all of them
"""
