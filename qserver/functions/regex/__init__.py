"""Regular expressions: in linear time if an automaton suffices, else with a time limit."""
