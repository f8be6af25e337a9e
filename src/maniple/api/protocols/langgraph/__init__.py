"""The LangGraph API: the team as a graph of LangGraph's server.

Source: https://docs.langchain.com/langsmith/server-api-ref and the client `langgraph_sdk`.
"""
