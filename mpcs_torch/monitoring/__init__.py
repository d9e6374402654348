"""Monitor a model after deployment, by tests and intervals that stay valid however often you look."""

from mpcs_torch.monitoring.alarm import MonitorResult
from mpcs_torch.monitoring.monitors import ChangeMonitor, DriftMonitor, RiskMonitor

__all__ = ["ChangeMonitor", "DriftMonitor", "MonitorResult", "RiskMonitor"]
