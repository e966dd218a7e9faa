"""How much of everything the studio takes, in one place."""

from curvedray.inputs import MB

LARGEST_BODY = 1 * MB  # of a request in JSON
LARGEST_UPLOAD = {"cameras": 50 * MB, "map": 700 * MB, "video": 500 * MB}
MOST_UPLOADED = 4000 * MB  # in all
MOST_FILES = 400  # of one upload: a folder of frames
MOST_WAITING = 20  # takes in the queue
MOST_LISTENERS = 64  # open streams of events
MOST_AT_ONCE = 64  # requests that compute or wait to
MOST_KEYS, MOST_BLOCKS, MOST_CUTS = 64, 64, 32
MOST_FRAMES = 241
LARGEST_SIDE = 2048  # pixels of a video
LARGEST_PICTURE = 1024  # pixels of a side
LONGEST_PROMPT, LONGEST_MOVES, LONGEST_SCENE, LONGEST_TITLE = 2000, 2000, 8000, 200
LONGEST_LIST = 200  # takes per answer
