"""Measures the operators that a plan asks for, on the machine at hand; `python -m pipeweaver.profile` is its command.

needs     what a plan asks for: the tables of `pipeweaver costdb needs`
kernels   a function for each need that runs it with PyTorch
timing    how long a function takes: median and spread, by the processor's clock or a GPU's events
session   needs measured, most important first, until a budget is used up
tables    the measured times as tables of `pipeweaver costdb import`, and where they come from
"""
