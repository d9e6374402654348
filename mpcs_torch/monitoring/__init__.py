"""After deployment: tests and intervals that stay valid however often one looks."""

from mpcs_torch.monitoring.monitor import DriftMonitor, Reading
from mpcs_torch.monitoring.risk_monitor import ChangeMonitor, RiskMonitor

__all__ = ["ChangeMonitor", "DriftMonitor", "Reading", "RiskMonitor"]
