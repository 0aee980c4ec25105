"""Conversion of models and corpora from and to other packages, imported only when needed."""

from polyabayes._support.docs import fill_room
from polyabayes.interop.anndata import from_mudata, to_anndata
from polyabayes.interop.fasttopics import from_fasttopics
from polyabayes.interop.gensim import from_gensim, to_gensim
from polyabayes.interop.mallet import from_mallet
from polyabayes.interop.model_files import read_model
from polyabayes.interop.pycistopic import from_pycistopic
from polyabayes.interop.pykeyatm import from_pykeyatm
from polyabayes.interop.pyldavis import pyldavis_arguments, to_pyldavis
from polyabayes.interop.schpf import from_schpf, schpf_exposure
from polyabayes.interop.sklearn import from_sklearn, to_sklearn
from polyabayes.interop.stm import from_stm
from polyabayes.interop.tomotopy import from_tomotopy
from polyabayes.interop.topica import from_topica
from polyabayes.interop.vectoriser import CountVectorizer

__all__ = [
    "CountVectorizer",
    "from_fasttopics",
    "from_gensim",
    "from_mallet",
    "from_mudata",
    "from_pycistopic",
    "from_pykeyatm",
    "from_schpf",
    "from_sklearn",
    "from_stm",
    "from_tomotopy",
    "from_topica",
    "pyldavis_arguments",
    "read_model",
    "schpf_exposure",
    "to_anndata",
    "to_gensim",
    "to_pyldavis",
    "to_sklearn",
]

fill_room(globals())
