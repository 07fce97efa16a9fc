"""The documents that errata and readings refer to: how they were read, and BibTeX."""

HOW_READ = (
    "The sources were read as text that had been extracted from slides and notes. Wording and formulas can be "
    "damaged by that, so a slip listed here may be one of the extraction and not of the authors. Nobody but the "
    "authors can tell, and the results are theirs either way."
)

TUTORIAL = """@misc{han2025demystifying,
  title        = {Demystifying Optimization and Generalization of Deep Learning via Feature Learning Theory},
  author       = {Han, Andi and Huang, Wei},
  howpublished = {Tutorial at AJCAI 2025, Canberra},
  year         = {2025}
}"""

MULTI_TASK = """@misc{suzuki2024feature,
  title        = {Feature learning theory in multi-task and in-context learning},
  author       = {Suzuki, Taiji},
  howpublished = {Talk at FIMI 2024},
  year         = {2024}
}"""

SEMINAR = """@misc{chen2025how,
  title        = {How Feature Learning Theory Works?},
  author       = {Chen, Yanbo},
  howpublished = {FLT Seminar Series, Session 2},
  year         = {2025}
}"""

ONE_STEP = """@misc{dobriban2024theory,
  title        = {A Theory of Non-Linear Feature Learning with One Gradient Step in Two-Layer Neural Networks},
  author       = {Dobriban, Edgar},
  howpublished = {Talk at the Lausanne Event on ML and NN Theory 2024},
  year         = {2024}
}"""
