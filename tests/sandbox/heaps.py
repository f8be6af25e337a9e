"""Honest code with many threads: it uses little memory, and much would be reserved for each thread."""

MANY_HEAPS = """
import threading
from concurrent.futures import ThreadPoolExecutor
together = threading.Barrier(24)
def work(number):
    texts = [str(each) for each in range(1000)]
    together.wait(10)
    return len(texts)
with ThreadPoolExecutor(24) as threads:
    print(sum(threads.map(work, range(24))) // 1000)
"""
