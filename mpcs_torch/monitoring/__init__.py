"""Monitor a model after deployment, by tests and intervals that stay valid however often you look."""

from mpcs_torch.monitoring.monitor import DriftMonitor, Reading
from mpcs_torch.monitoring.risk_monitor import ChangeMonitor, RiskMonitor

__all__ = ["ChangeMonitor", "DriftMonitor", "Reading", "RiskMonitor"]
