"""The engine in a false world, where one seed decides everything.

The order of tasks, the delay of each message, crashes and what the disk loses all follow from a
single number, so whatever goes wrong once goes wrong again on request. The code under test is the
product's own, unchanged: it takes its clock, chance, channels and disk as arguments, and here it is
given these. The simulation imports qserver; qserver never imports the simulation.
"""
