"""Figures in prose of docs/ and README.md that a command prints (figures.py): it prints them still."""

import shlex

import pytest
from checkout import ROOT
from figures import is_printed, printed
from figures_test import PAGES


def test_commands_print_the_figures(pipeweaver):
    figures = [(page, *one) for page in PAGES for one in printed((ROOT / page).read_text())]
    missing = [(page, figure, command) for page, figure, command in figures
               if not is_printed(figure, pipeweaver(*shlex.split(command)[1:]))]
    assert missing == []


def test_a_comment_names_figure_and_command():
    page = "It takes 22.8 s.\n<!-- figures: 22.8 s by pipeweaver emulate --model a -->\n"
    assert printed(page) == [("22.8 s", "pipeweaver emulate --model a")]


@pytest.mark.parametrize("figure, output, there", [("22.8 s", "step 22.814 s", True), ("22.8 s", "step 22.9 s", False),
                                                   ("29.7 %", "MFU 29.72 %", True)])
def test_a_figure_is_a_number_of_the_output_rounded(figure, output, there):
    assert is_printed(figure, output) == there
