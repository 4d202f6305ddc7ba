def test_version(forerun):
    answer = forerun("--version")
    assert answer.code == 0
    assert answer.out.startswith("forerun ")
