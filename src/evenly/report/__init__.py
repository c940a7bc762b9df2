"""Figures, tables and pages, drawn from records and arrays; never imports torch.

How a page gets its numbers: `experiments.lookup` finds the run folders, `experiments.run_records` reads their records,
`experiments.sections` and its neighbours make `blocks` and charts (`figures`) of them, and `page` renders the HTML.
`claims` does the same for the ledger of the papers.
"""
