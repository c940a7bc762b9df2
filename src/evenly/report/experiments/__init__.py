"""The page of experiments: stored comparisons and single runs, from records alone."""

from evenly.report.experiments.page import SECTIONS as SECTIONS
from evenly.report.experiments.page import Page as Page
from evenly.report.experiments.page import page_of as page_of
