"""The documents that errata refer to, as BibTeX."""

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
