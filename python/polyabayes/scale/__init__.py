"""Work on many processes and machines: executors, and a shim for Ray, which has none."""

from polyabayes.scale.ray import RayExecutor

__all__ = ["RayExecutor"]
