"""Regular expressions: in linear time where an automaton serves, else with a time limit."""
