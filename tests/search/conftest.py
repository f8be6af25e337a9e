from tests.egress.proxy_servers import authority, proxy_variables

__all__ = ["authority", "proxy_variables"]
