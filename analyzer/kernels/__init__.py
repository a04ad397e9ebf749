r"""Kernel names, a module a library. Each offers `PATTERNS`, a tuple of `Pattern`.

To add a pattern, write one entry in the module of its library (or a new module: it is found by itself):

1. `match`: a regular expression that is searched anywhere in the name. Write it on what the library calls the kernel,
   not on template arguments, and so that it fits the demangled and the mangled name (`_ZN5aiter24add_rmsnorm…`): digits
   stand before a mangled word, so no `\b`. No nested repeats: a name can be kilobytes long.
2. `kind` and `subclass`: the word must be in `analyzer.model.subclass.SUBCLASSES`.
3. `examples`: at least one name from a trace or from the library's source. Long names may be cut after the part that
   identifies the kernel. The tests ask that each is claimed by its own pattern.
4. `breadth`: NAMED for a library's own identifiers, FAMILY for a naming scheme (a namespace, a code generator, a loop
   that runs any functor), CATCH_ALL for bare words. Catch-alls are in `words` only.
5. `blend`: FUSED for a collective that computes, OVERLAPPED for a product with an exchange inside.

Asked first is NAMED, then FAMILY, then CATCH_ALL; within a breadth module by module, within a module in the tuple's
order. Only the order within a module may decide what a kernel is: two modules must not read one name differently at the
same breadth (tested on all examples). Where they would, make the narrower pattern narrower.

A name is a false friend when it holds a word of another class: `flash_fwd_splitkv_combine_kernel`,
`get_dispatch_layout`, `reduce_kernel`. Put such names among the examples of the pattern that owns them.
"""
