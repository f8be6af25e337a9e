"""What a run has for its agents and tools: its identity, inbox, budget, ledger of calls and evidence."""
