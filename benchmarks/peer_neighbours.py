"""Nearest neighbours by faiss and by scikit-learn's brute force: (distances, indices)."""


def faiss(q, keys, k):
    """Exact, by float32 products."""
    import faiss

    return lambda: faiss.knn(q, keys, k)


def scikit_learn(q, keys, k):
    """Exact, by products."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=-1)
    return lambda: search.fit(keys).kneighbors(q)
