"""Study `claim-mutants`: the papers' experiments under wrong laws, which the claims should notice.

`mutants.toml` lists the wrong laws and the experiments that exercise them. It was committed before
the first run. A claim notices a mutant if its verdict changes from *reproduced*.
"""
