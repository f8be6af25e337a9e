"""Middleware of the ReAct agents: one module a concern, assembled in `maniple.agents.react`."""
