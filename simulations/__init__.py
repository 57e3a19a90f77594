"""Runs the engine in a false world, where one seed decides everything.

The order of tasks, the delay of each message, crashes and what the disk loses all follow from one
number, so every failure can be replayed. The code under test is the product's own, unchanged: it
takes its clock, chance, channels and disk as arguments. The simulation imports qserver; qserver
never imports the simulation.
"""
