"""From files to a Run. `load` is the only door; `kineto/` reads a file, `events/` makes a trace, `layout/` the split.

Which function makes which number, by the words on the screen and the field of the report:

    ranks … of …     run.world_size  ingest.layout.layout:guess
    tp=2 (metadata)  run.layout      ingest.layout.layout:guess
    engine           run.engine      ingest.layout.claims:engine_of
    nodes            run.nodes       ingest.topology:read_topology
"""
