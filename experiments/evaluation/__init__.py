"""The paper's evaluation section, from data to page; `experiments/paper.py` runs it."""
