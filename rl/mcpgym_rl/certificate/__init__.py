"""Certificates: what a policy does on every line of play, whatever its opponent replies. No sample, no error bar."""

from mcpgym_rl.certificate.certification import Certification, Choice, Progress, certify
from mcpgym_rl.certificate.lines import Line
from mcpgym_rl.certificate.twice import NotDeterministic

__all__ = ["Certification", "Choice", "Line", "NotDeterministic", "Progress", "certify"]
