"""Measures, runs and compares on the GPU at hand; `python -m pipeweaver.selfcheck` is its command.

cases     what is run: three small stacks as model files with their batches, and plans whose operators are measured
folder    the folder of a check: what each part has found, and what is missing
device    which device it is, and whose cluster it is taken for
command   the command: parts in processes of their own, each with its budget, then the comparison
rates     part "machine": products, copies, launches with and without CUDA graphs, cross entropy
operators part "operators": what plans ask for and tables lack, measured
networks  the stacks as PyTorch modules
steps     part "steps": one GPU's steps, eager and compiled, with every recomputation
ranks     part "ranks": two ranks run a plan by the executor
rank      what one of the two does
collectives what traffic between the two takes
compare   predicted beside measured, and whether that is within the limits
page      the same as one page of HTML
"""
