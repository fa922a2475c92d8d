"""Telemetry: OpenTelemetry spans and metrics of episodes and rollouts. Off unless asked for, and then nothing is made.

Read it in this order: :mod:`~mcpgym.telemetry.context` (which span is current, and how W3C carries it),
:mod:`~mcpgym.telemetry.spans` (what a span is here), :mod:`~mcpgym.telemetry.sections` (spans around a piece of code),
:mod:`~mcpgym.telemetry.watching` (what is told of an episode), :mod:`~mcpgym.telemetry.recorder` (the way out),
:mod:`~mcpgym.telemetry.settings` (the standard ``OTEL_*`` variables).

Why spans of our own: the SDK's cost more than a whole tool call does. Its samplers, resources, exporters and transports
are used as they are, and every exporter gets ordinary read-only spans.

What is told of an episode is told to its operator. No span, metric or log line has a token, a seed, arguments, texts,
or what a task hides; an episode is named by a digest of its token.
"""
