from maniple.graph.nodes.coordinator import CoordinatorNode
from maniple.graph.nodes.planner import PlannerNode
from maniple.graph.nodes.review import ReviewNode
from maniple.graph.nodes.supervisor import SupervisorNode
from maniple.graph.nodes.worker import WorkerNode

__all__ = ["CoordinatorNode", "PlannerNode", "ReviewNode", "SupervisorNode", "WorkerNode"]
