from maniple.graph.nodes.coordinator import ClarifyNode, CoordinatorNode
from maniple.graph.nodes.planner import PlannerNode
from maniple.graph.nodes.review import ReviewNode
from maniple.graph.nodes.schedule import ScheduleNode
from maniple.graph.nodes.solo import SoloNode
from maniple.graph.nodes.supervisor import SupervisorNode
from maniple.graph.nodes.worker import WorkerNode

__all__ = [
    "ClarifyNode",
    "CoordinatorNode",
    "PlannerNode",
    "ReviewNode",
    "ScheduleNode",
    "SoloNode",
    "SupervisorNode",
    "WorkerNode",
]
