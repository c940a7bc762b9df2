"""The page of a run and of the comparison it belongs to, from records alone."""

from evenly.report.run_page.whole import SECTIONS as SECTIONS
from evenly.report.run_page.whole import RunPage as RunPage
from evenly.report.run_page.whole import run_page as run_page
