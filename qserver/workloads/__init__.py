"""What clients of a benchmark do and how it is measured, and benchmarks that a service runs on
itself, in a scratch database: `GET /bench`.

operations  what a client does again and again, in process or over HTTP
histogram   latencies and their percentiles
standard    the workloads of a service, and the check at the end
measuring   runs clients in a loop until the time is over, one benchmark at a time, and reports
"""
