"""BibTeX entries that several claims share."""

KIM_SUZUKI_2024 = """@inproceedings{kim2024transformers,
  title     = {Transformers Learn Nonlinear Features In Context: Nonconvex Mean-field Dynamics on the Attention Landscape},
  author    = {Kim, Juno and Suzuki, Taiji},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}"""  # noqa: E501

TAKAKURA_SUZUKI_2024 = """@inproceedings{takakura2024mean,
  title     = {Mean-field Analysis on Two-layer Neural Networks from a Kernel Perspective},
  author    = {Takakura, Shokichi and Suzuki, Taiji},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}"""

CAO_2022 = """@inproceedings{cao2022benign,
  title     = {Benign Overfitting in Two-layer Convolutional Neural Networks},
  author    = {Cao, Yuan and Chen, Zixiang and Belkin, Mikhail and Gu, Quanquan},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {35},
  year      = {2022}
}"""
