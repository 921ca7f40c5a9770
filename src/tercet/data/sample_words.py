"""Words and phrases, written for this project, of which `sample` composes its rows."""

from __future__ import annotations

from typing import NamedTuple


class Family(NamedTuple):
    """Topics, and questions about them: each inner list words one and the same question."""

    topics: list[str]
    questions: list[list[str]]


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


def _items(text: str) -> list[str]:
    return " ".join(text.split()).split(", ")


def _wordings(text: str) -> list[list[str]]:
    """One list a block; blocks are parted by an empty line."""
    return [_lines(block) for block in text.split("\n\n")]


def _synonyms(text: str) -> list[tuple[str, ...]]:
    """One tuple a line, of wordings that mean the same."""
    return [tuple(line.split(" / ")) for line in _lines(text)]


KINDS = _items(
    """
comedy, thriller, romance, western, documentary, cartoon, ghost story, war film, musical, heist
film, family drama, detective story, road movie, science fiction film, costume drama, sequel
"""
)
TITLES = _items(
    """
The Glass Harbour, Nine Winters, A Train to Nowhere, The Lemon Thief, Low Tide, Ashes and Honey,
The Last Cartographer, Brothers of Salt, Midnight Orchard, Paper Lanterns, The Quiet Engine,
Seven Borrowed Days, Copper Moon
"""
)
ASPECTS = _items(
    """
the script, the acting, the ending, the music, the dialogue, the camera work, the story, the
humour, the pacing, the leading role, the opening scene
"""
)
VERDICTS = (
    _lines(
        """
is an insult to anyone who bought a ticket
is the worst that I have sat through in years
is unbearable from start to finish
made me want to walk out
is a complete and embarrassing disaster
is so bad that the audience began to leave
has not one honest moment
is painfully stupid
deserves to be forgotten at once
fails in every way imaginable
is ugly, loud and hateful
is a shameful waste of talent and money
"""
    ),
    _lines(
        """
never quite finds its feet
drags more than it should
could have used another draft
feels thinner than it promised to be
leaves little behind
is a bit of a letdown
tries too hard to be clever
loses its way before long
is rather flat
wears out its welcome
seems tired and borrowed
misses more often than it hits
"""
    ),
    _lines(
        """
does what one would expect
is neither good nor bad
will please some and puzzle others
is about what the poster says
is no better and no worse than the rest
is typical of its year
has its ups and downs
is hard to judge after one viewing
stays close to the book
passes without leaving a mark either way
is average
is what the director usually does
"""
    ),
    _lines(
        """
works more often than not
is pleasant enough company
has real charm
is better than I had feared
holds the interest
is well worth a look
shows care and some wit
has a warm heart
is quietly effective
grows on you
is solid and likeable
brings a smile now and then
"""
    ),
    _lines(
        """
is an absolute triumph
took my breath away
is flawless from the first frame to the last
left the whole audience cheering
is a masterpiece of feeling and craft
is the best that I have seen in ten years
is thrilling, tender and wise
could not be more beautiful
is pure joy
deserves every prize there is
is simply magnificent
moved me to tears of happiness
"""
    ),
)
SKILLS = Family(
    _items(
        """
the guitar, Italian, chess, swimming, knitting, photography, the piano, sign language, juggling,
pottery, skiing, calligraphy
"""
    ),
    _wordings(
        """
How do I start learning {}?
What are the first steps in learning {}?
Where should a beginner begin with {}?
I am new to {}: how should I start?

How long does it take to get good at {}?
How many years of practice does {} need?
How much time must I spend on {} before I am any good?

Why should anyone learn {}?
What are the benefits of learning {}?
What does a person gain by taking up {}?

How much do lessons in {} cost?
What do teachers of {} charge?
Is it expensive to take lessons in {}?

Am I too old to learn {}?
Can a grown-up still learn {} from nothing?
Is it possible to take up {} late in life?
"""
    ),
)
DISHES = Family(
    _items(
        """
lentil soup, apple pie, fried rice, pancake batter, tomato sauce, potato salad, banana bread,
chicken curry, goulash, rice pudding, onion soup, hummus
"""
    ),
    _wordings(
        """
How do you make {}?
What is a simple recipe for {}?
Can somebody tell me how to prepare {} at home?
How is {} made?

How long does {} keep in the fridge?
After how many days does {} go bad?
For how long is it safe to store {}?

Is {} healthy?
Is it good for me to eat {} often?
Does {} count as healthy food?

Can I freeze {}?
Is it all right to put {} in the freezer?
Does {} survive being frozen?

What goes well with {}?
What should I serve together with {}?
Which side dishes suit {}?
"""
    ),
)
DEVICES = Family(
    _items(
        """
laptop, washing machine, phone, printer, vacuum cleaner, television, bicycle, toaster, coffee
machine, camera, lawn mower, sewing machine
"""
    ),
    _wordings(
        """
Why does my {} make a strange noise?
What causes odd sounds in a {}?
My {} has become noisy, what is the reason?

How do I clean my {}?
What is the right way to clean a {}?
How can I get the dirt out of a {}?
What should I clean my {} with?

Which {} should I buy?
What is the best {} for the money?
Can you recommend a good {}?

How long does a {} usually last?
After how many years does a {} wear out?
What is the life span of an ordinary {}?

Where can I sell my old {}?
Who buys a used {}?
How do I find a buyer for a second-hand {}?
"""
    ),
)
CITIES = Family(
    _items(
        """
Lisbon, Oslo, Nairobi, Kyoto, Montreal, Lima, Hanoi, Prague, Dublin, Athens, Cape Town, Seoul
"""
    ),
    _wordings(
        """
When is the best time to visit {}?
In which month should I travel to {}?
What time of year is good for a trip to {}?

Is it expensive to live in {}?
What does it cost to live in {}?
How much money does one need for daily life in {}?

How do I find a job in {} as a foreigner?
Can foreigners get work in {}?
What are the chances of a foreigner finding work in {}?

Is {} safe at night?
Can one walk through {} after dark without worry?
How dangerous is {} late in the evening?

What should I eat in {}?
Which local food must I try in {}?
What dishes is {} known for?
"""
    ),
)
PETS = Family(
    _items(
        """
puppy, kitten, parrot, rabbit, hamster, goldfish, pony, tortoise, goat, canary, ferret, guinea
pig
"""
    ),
    _wordings(
        """
What should I feed my {}?
What does a {} eat?
Which food is right for a {}?
What is a good diet for a {}?

How much does it cost to keep a {}?
Is a {} an expensive pet?
What does a {} cost its owner in a year?

How long does a {} sleep each day?
How many hours of sleep does a {} need?
Is it normal that my {} sleeps so much?

How do I know that my {} is ill?
What are the signs of sickness in a {}?
Which symptoms show that a {} is unwell?

Can a {} live with small children?
Is a {} a good pet for a family with toddlers?
Are young children safe around a {}?
"""
    ),
)
FAMILIES = (SKILLS, DISHES, DEVICES, CITIES, PETS)

WEIGHTS = {"who": 1.0, "action": 1.5, "thing": 1.5, "place": 1.0}
PLURALS = ("two", "three", "a pair", "a trio")
WHO = _synonyms(
    """
an old man / an elderly man
a little girl / a small girl
a doctor / a physician
two boys / a pair of boys
a policeman / a police officer
a young woman / a woman in her twenties
three students / a trio of students
a sailor / a seaman
a farmer / a man who works on a farm
a teacher / a schoolteacher
two nuns / a pair of nuns
a cook / a chef
"""
)
ACTIONS = _synonyms(
    """
carrying / holding
painting a picture of / making a painting of
washing / cleaning
photographing / taking a photo of
selling / offering for sale
repairing / fixing
looking for / searching for
pointing at / pointing a finger at
hiding / concealing
wrapping up / packing up
"""
)
THINGS = _synonyms(
    """
a red bicycle / a red bike
a wooden chair / a chair made of wood
a violin / a fiddle
a big clock / a large clock
an old radio / an ancient radio
a pair of boots / some boots
a silver cup / a cup of silver
a kite / a paper kite
a broken lamp / a lamp that is broken
a suitcase / a travelling case
a birdcage / a cage for birds
a toy boat / a small toy ship
"""
)
PLACES = _synonyms(
    """
in the park / in a public park
in the kitchen / in a kitchen
at the railway station / at a train station
on the beach / by the sea
in a garage / inside a garage
in front of a church / outside a church
at the market / in the market place
on a bridge / upon a bridge
in the garden / in a garden
in the snow / on snowy ground
beside a lake / at the edge of a lake
in the street / on the road
"""
)
