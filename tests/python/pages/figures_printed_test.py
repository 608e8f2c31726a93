"""Figures in prose of docs/ and README.md that a command prints (figures.py): it prints them still."""

import shlex

import pytest
from checkout import ROOT
from figures import is_printed, printed
from figures_test import PAGES

FIGURES = [(page, *one) for page in PAGES for one in printed((ROOT / page).read_text())]


@pytest.mark.parametrize("page, figure, command", FIGURES, ids=[f"{page}: {figure}" for page, figure, _ in FIGURES])
def test_a_command_prints_the_figure(pipeweaver, page, figure, command):
    output = pipeweaver(*shlex.split(command)[1:])
    assert is_printed(figure, output), f"{page} says {figure}, printed is\n{output}"


def test_there_are_figures():
    assert len(FIGURES) >= 5
