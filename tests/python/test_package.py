import forerun as fr


def test_version():
    assert fr.__version__.count(".") == 2
