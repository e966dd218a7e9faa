"""The shared film: what `curvedray generate` leaves behind."""

from curvedray.media.video import read_video


def test_the_film_is_whole_and_made_once(filmed):
    assert len(read_video(filmed / "film.mp4").frames) == 17
    assert not (filmed.parent / "filming").exists()
