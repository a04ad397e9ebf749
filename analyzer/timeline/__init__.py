"""One Perfetto file of all ranks on one clock.

Which function makes which number, by the words on the screen:

    timeline: lanes and markers  timeline.timeline:timeline
"""
