"""Studies that compare Waterfill with theory, with kernels and with itself. They are not shipped.

`python -m validation` lists them with what each shows, costs and needs; `python -m validation NAME`
runs one. `study` is their harness; a study is a module with a `STUDY`, listed in `__main__`.
"""
