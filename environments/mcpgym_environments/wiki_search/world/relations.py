"""What can be known of the things of a generated world: every kind of fact, and how people name and ask for it."""

# A table: one line each.
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass

from mcpgym_environments.wiki_search.knowledge import Relation, ValueKind
from mcpgym_environments.wiki_search.world import vocabulary

KINDS: dict[str, str] = {
    "country": "countries",
    "region": "regions",
    "settlement": "settlements",
    "person": "people",
    "river": "rivers",
    "mountain": "mountains",
    "species": "species",
    "institution": "institutions",
    "work": "works",
    "event": "events",
    "ship": "ships",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """A relation and how its values are kept: as an index into a ``vocabulary``, or as the inverse of another."""

    relation: Relation
    vocabulary: tuple[str, ...] = ()
    inverse: str = ""


FACTS: dict[str, Fact] = {}


def _add(
    name: str,
    value: ValueKind,
    phrases: str,
    questions: str,
    *,
    object: str = "",
    unit: str = "",
    functional: bool = True,
    single: bool = False,
    vocabulary: tuple[str, ...] = (),
    inverse: str = "",
) -> None:
    """``phrases`` and ``questions`` stand between bars, the last of each for tests; the kind is the name's first word."""
    relation = Relation(
        name=name,
        subject=name.partition("_")[0],
        value=value,
        object=object,
        unit=unit,
        functional=functional,
        inverse_functional=single,
        phrases=tuple(part.strip() for part in phrases.split("|")),
        questions=tuple(part.strip() for part in questions.split("|")),
    )
    FACTS[name] = Fact(relation, vocabulary, inverse)


# Countries
_add(
    "country_capital",
    "entity",
    "the capital of {} | the capital city of {} | the seat of government of {} | the city from which {} is governed",
    "What is the capital of {}? | Which settlement is the capital of {}? | Where does {} have its capital? | From which city is {} governed?",
    object="settlement",
    single=True,
)
_add(
    "country_area",
    "number",
    "the area of {} | the land area of {} | the total area of {} | the extent of {}",
    "What is the area of {} in square kilometres? | How many square kilometres does {} cover? | How large is {}, in square kilometres? | Over how many square kilometres does {} extend?",
    unit="km²",
)
_add(
    "country_population",
    "number",
    "the population of {} | the number of inhabitants of {} | the total population of {} | the number of people living in {}",
    "What is the population of {}? | How many people live in {}? | How many inhabitants does {} have? | How many inhabitants are there in {}?",
)
_add(
    "country_currency",
    "text",
    "the currency of {} | the money used in {} | the unit of currency of {} | the legal tender of {}",
    "What is the currency of {}? | Which currency is used in {}? | What is the money of {} called? | In which currency does one pay in {}?",
)
_add(
    "country_language",
    "text",
    "the official language of {} | the state language of {} | the language of government of {} | the language in which {} is administered",
    "What is the official language of {}? | Which language is the official one in {}? | In which language is {} governed? | What is the state language of {}?",
)
_add(
    "country_independence",
    "date",
    "the date on which {} became independent | the date of independence of {} | the day of {}'s independence | the day on which {} gained independence",
    "When did {} become independent? | On what date did {} gain its independence? | What is the date of independence of {}? | On which day did {} declare its independence?",
)
_add(
    "country_head",
    "entity",
    "the head of state of {} | the person at the head of {} | the current head of state of {} | the leader of {}",
    "Who is the head of state of {}? | Who leads {}? | Which person is the head of state of {}? | Who stands at the head of {}?",
    object="person",
    single=True,
)
_add(
    "country_summit",
    "entity",
    "the highest mountain of {} | the highest point of {} | the highest peak in {} | the tallest mountain in {}",
    "What is the highest mountain of {}? | Which mountain is the highest point of {}? | What is the highest peak in {} called? | Which peak in {} is the tallest?",
    object="mountain",
    single=True,
)
_add(
    "country_river",
    "entity",
    "the longest river of {} | the longest river in {} | the principal river of {} | the river that is the longest in {}",
    "What is the longest river of {}? | Which river is the longest in {}? | What is the longest river in {} called? | Which is the longest of the rivers of {}?",
    object="river",
    single=True,
)
_add(
    "country_metropolis",
    "entity",
    "the largest settlement of {} | the most populous settlement of {} | the largest city of {} | the settlement of {} with the most inhabitants",
    "What is the largest settlement of {}? | Which settlement of {} has the most inhabitants? | What is the most populous city of {}? | Which is the most populous settlement of {}?",
    object="settlement",
    single=True,
)
_add(
    "country_animal",
    "entity",
    "the national animal of {} | the heraldic animal of {} | the animal on the arms of {} | the species that is the national animal of {}",
    "What is the national animal of {}? | Which species is the national animal of {}? | Which animal stands on the arms of {}? | Which animal is the emblem of {}?",
    object="species",
)
_add(
    "country_regions",
    "entity",
    "the regions of {} | the regions that make up {} | the regions into which {} is divided | the parts of {}",
    "Which regions does {} consist of? | What are the regions of {}? | Into which regions is {} divided? | Which regions make up {}?",
    object="region",
    functional=False,
    single=True,
    inverse="region_country",
)
_add(
    "country_neighbours",
    "entity",
    "the neighbours of {} | the countries that border {} | the neighbouring countries of {} | the countries next to {}",
    "Which countries border {}? | What are the neighbouring countries of {}? | With which countries does {} share a border? | Which countries lie next to {}?",
    object="country",
    functional=False,
    inverse="country_neighbours",
)

# Regions
_add(
    "region_country",
    "entity",
    "the country of {} | the country to which {} belongs | the country in which {} lies | the country that {} is a part of",
    "In which country does {} lie? | To which country does {} belong? | Which country is {} a region of? | Of which country is {} a part?",
    object="country",
)
_add(
    "region_seat",
    "entity",
    "the seat of {} | the administrative centre of {} | the regional capital of {} | the settlement from which {} is administered",
    "What is the administrative centre of {}? | Where is the seat of {}? | What is the regional capital of {}? | From which settlement is {} administered?",
    object="settlement",
    single=True,
)
_add(
    "region_area",
    "number",
    "the area of {} | the land area of {} | the extent of {} | the surface of {}",
    "What is the area of {} in square kilometres? | How many square kilometres does {} cover? | How large is {}, in square kilometres? | Over how many square kilometres does {} stretch?",
    unit="km²",
)
_add(
    "region_population",
    "number",
    "the population of {} | the number of inhabitants of {} | the number of people in {} | the number of people who live in {}",
    "What is the population of {}? | How many people live in {}? | How many inhabitants does {} have? | How many people are there in {}?",
)
_add(
    "region_formed",
    "number",
    "the year in which {} was formed | the year of formation of {} | the founding year of {} | the year {} was set up",
    "In what year was {} formed? | When was {} established as a region? | In which year was {} created? | In what year was {} set up?",
    unit="year",
)
_add(
    "region_governor",
    "entity",
    "the governor of {} | the current governor of {} | the person who governs {} | the holder of the governorship of {}",
    "Who is the governor of {}? | Who governs {}? | Which person is governor of {}? | Who holds the governorship of {}?",
    object="person",
    single=True,
)
_add(
    "region_settlements",
    "entity",
    "the settlements of {} | the settlements in {} | the towns and villages of {} | the places in {}",
    "Which settlements lie in {}? | What are the settlements of {}? | Which towns and villages belong to {}? | Which settlements are there in {}?",
    object="settlement",
    functional=False,
    single=True,
    inverse="settlement_region",
)
_add(
    "region_mountains",
    "entity",
    "the mountains of {} | the mountains in {} | the peaks of {} | the mountains that rise in {}",
    "Which mountains lie in {}? | What are the mountains of {}? | Which peaks rise in {}? | Which mountains are there in {}?",
    object="mountain",
    functional=False,
    single=True,
    inverse="mountain_region",
)
_add(
    "region_species",
    "entity",
    "the species native to {} | the native species of {} | the animals native to {} | the species found only in {}",
    "Which species are native to {}? | What are the native species of {}? | Which animals are found only in {}? | Which species live nowhere but in {}?",
    object="species",
    functional=False,
    single=True,
    inverse="species_region",
)

# Settlements
_add(
    "settlement_region",
    "entity",
    "the region of {} | the region in which {} lies | the region to which {} belongs | the region that includes {}",
    "In which region does {} lie? | To which region does {} belong? | Which region is {} in? | Of which region is {} a part?",
    object="region",
)
_add(
    "settlement_population",
    "number",
    "the population of {} | the number of inhabitants of {} | the number of people living in {} | the number of people in {}",
    "What is the population of {}? | How many people live in {}? | How many inhabitants does {} have? | How many people have their home in {}?",
)
_add(
    "settlement_elevation",
    "number",
    "the elevation of {} | the height of {} above the sea | the altitude of {} | the height above sea level of {}",
    "What is the elevation of {} in metres? | How many metres above the sea does {} lie? | At what altitude does {} lie, in metres? | How high above sea level is {}, in metres?",
    unit="m",
)
_add(
    "settlement_founded",
    "number",
    "the year in which {} was founded | the founding year of {} | the year of {}'s foundation | the year {} came into being",
    "In what year was {} founded? | When was {} founded? | In which year was {} established? | What is the founding year of {}?",
    unit="year",
)
_add(
    "settlement_founder",
    "entity",
    "the founder of {} | the person who founded {} | the person who established {} | the one who laid out {}",
    "Who founded {}? | Who was the founder of {}? | Which person founded {}? | By whom was {} laid out?",
    object="person",
)
_add(
    "settlement_river",
    "entity",
    "the river on which {} lies | the river that flows through {} | the river at {} | the river that passes {}",
    "On which river does {} lie? | Which river flows through {}? | What river is {} on? | Which river passes through {}?",
    object="river",
)
_add(
    "settlement_area",
    "number",
    "the area of {} | the municipal area of {} | the surface area of {} | the ground covered by {}",
    "What is the area of {} in square kilometres? | How many square kilometres does {} cover? | How large is the municipal area of {}, in square kilometres? | How many square kilometres does {} take up?",
    unit="km²",
)
_add(
    "settlement_mayor",
    "entity",
    "the mayor of {} | the current mayor of {} | the person who is mayor of {} | the holder of the mayoralty of {}",
    "Who is the mayor of {}? | Which person is mayor of {}? | Who holds the office of mayor in {}? | Who heads the town council of {}?",
    object="person",
    single=True,
)
_add(
    "settlement_twin",
    "entity",
    "the sister town of {} | the twin town of {} | the town twinned with {} | the partner town of {}",
    "With which settlement is {} twinned? | What is the sister town of {}? | Which settlement is the twin of {}? | Which is the partner town of {}?",
    object="settlement",
    single=True,
)
_add(
    "settlement_distance",
    "number",
    "the distance from {} to the coast | the distance between {} and the nearest coast | the distance of {} from the sea | the way from {} to the sea",
    "How far is {} from the nearest coast, in kilometres? | How many kilometres lie between {} and the sea? | At what distance from the nearest coast does {} lie, in kilometres? | How many kilometres is it from {} to the sea?",
    unit="km",
)
_add(
    "settlement_trade",
    "text",
    "the main trade of {} | the chief industry of {} | the trade {} is known for | what {} lives from",
    "What is the main trade of {}? | What is the chief industry of {}? | For which trade is {} known? | From which trade does {} mostly live?",
    vocabulary=vocabulary.TRADES,
)
_add(
    "settlement_natives",
    "entity",
    "the people born in {} | the natives of {} | the people whose birthplace is {} | the people native to {}",
    "Which people were born in {}? | Who was born in {}? | Who are the natives of {}? | Whose birthplace is {}?",
    object="person",
    functional=False,
    single=True,
    inverse="person_birthplace",
)
_add(
    "settlement_institutions",
    "entity",
    "the institutions based in {} | the institutions of {} | the institutions with their seat in {} | the bodies that have their seat in {}",
    "Which institutions are based in {}? | Which institutions have their seat in {}? | What institutions are there in {}? | Which bodies have their home in {}?",
    object="institution",
    functional=False,
    single=True,
    inverse="institution_seat",
)

# People
_add(
    "person_born",
    "date",
    "the date of birth of {} | the birth date of {} | the day {} was born | the birthday of {}",
    "When was {} born? | On what date was {} born? | What is the date of birth of {}? | On which day was {} born?",
)
_add(
    "person_birthplace",
    "entity",
    "the birthplace of {} | the place where {} was born | the native town of {} | the place of birth of {}",
    "Where was {} born? | In which settlement was {} born? | What is the birthplace of {}? | Which settlement is {} from by birth?",
    object="settlement",
)
_add(
    "person_died",
    "date",
    "the date of death of {} | the day {} died | the date on which {} died | the death date of {}",
    "When did {} die? | On what date did {} die? | What is the date of death of {}? | On which day did {} die?",
)
_add(
    "person_deathplace",
    "entity",
    "the place where {} died | the place of death of {} | the settlement in which {} died | the deathplace of {}",
    "Where did {} die? | In which settlement did {} die? | What is the place of death of {}? | At which place did {} die?",
    object="settlement",
)
_add(
    "person_home",
    "entity",
    "the home town of {} today | the place where {} lives | the residence of {} | the settlement in which {} has a home",
    "Where does {} live? | In which settlement does {} live? | What is the place of residence of {}? | In which settlement does {} make a home?",
    object="settlement",
)
_add(
    "person_occupation",
    "text",
    "the occupation of {} | the profession of {} | the calling of {} | what {} was by profession",
    "What is the occupation of {}? | What is {} known as by profession? | What is the profession of {}? | What is {} by trade?",
    vocabulary=vocabulary.OCCUPATIONS,
)
_add(
    "person_university",
    "entity",
    "the university that {} attended | the alma mater of {} | the university at which {} studied | the place of study of {}",
    "Where did {} study? | Which university did {} attend? | What is the alma mater of {}? | At which university did {} study?",
    object="institution",
)
_add(
    "person_employer",
    "entity",
    "the institution that {} worked for | the employer of {} | the institution at which {} served | the institution that employed {}",
    "Which institution did {} work for? | What was the employer of {}? | At which institution did {} hold a post? | Which institution employed {}?",
    object="institution",
)
_add(
    "person_spouse",
    "entity",
    "the spouse of {} | the person married to {} | the person whom {} married | the partner in marriage of {}",
    "Who is the spouse of {}? | Whom did {} marry? | To whom was {} married? | Who became the spouse of {}?",
    object="person",
    single=True,
)
_add(
    "person_mentor",
    "entity",
    "the mentor of {} | the teacher of {} | the person who taught {} | the person to whom {} was apprenticed",
    "Who was the mentor of {}? | Who taught {}? | Under whom did {} train? | Whose pupil was {}?",
    object="person",
)
_add(
    "person_mother",
    "entity",
    "the mother of {} | the woman who was the mother of {} | the female parent of {} | the woman who gave birth to {}",
    "Who was the mother of {}? | Which woman was the mother of {}? | What is the name of the mother of {}? | Of which woman is {} a child?",
    object="person",
)
_add(
    "person_children",
    "entity",
    "the children of {} | the sons and daughters of {} | the offspring of {} | those whose mother is {}",
    "Who are the children of {}? | What are the names of the children of {}? | Which children did {} have? | To which people did {} give birth?",
    object="person",
    functional=False,
    single=True,
    inverse="person_mother",
)
_add(
    "person_pupils",
    "entity",
    "the pupils of {} | the students of {} | the people taught by {} | those who learned from {}",
    "Who were the pupils of {}? | Which people did {} teach? | Whom did {} train? | Which people learned from {}?",
    object="person",
    functional=False,
    single=True,
    inverse="person_mentor",
)
_add(
    "person_works",
    "entity",
    "the works of {} | the works created by {} | the works {} left | the works that come from {}",
    "Which works did {} create? | What are the works of {}? | Which works are by {}? | Which works come from the hand of {}?",
    object="work",
    functional=False,
    single=True,
    inverse="work_creator",
)

# Rivers
_add(
    "river_length",
    "number",
    "the length of {} | the total length of {} | the length of the course of {} | the distance that {} runs from source to mouth",
    "How long is {}, in kilometres? | What is the length of {} in kilometres? | How many kilometres long is {}? | Over how many kilometres does {} run?",
    unit="km",
)
_add(
    "river_source",
    "entity",
    "the mountain on which {} rises | the source of {} | the mountain where {} begins | the mountain from which {} comes down",
    "On which mountain does {} rise? | Where does {} have its source? | On which mountain is the source of {}? | From which mountain does {} come down?",
    object="mountain",
)
_add(
    "river_into",
    "entity",
    "the river into which {} flows | the river that {} joins | the river of which {} is a tributary | the river that takes up {}",
    "Into which river does {} flow? | Which river does {} join? | Of which river is {} a tributary? | Which river takes up {}?",
    object="river",
)
_add(
    "river_discharge",
    "number",
    "the mean discharge of {} | the average flow of {} | the discharge of {} at its mouth | the mean flow of water of {}",
    "What is the mean discharge of {} in cubic metres per second? | How many cubic metres per second does {} carry? | What is the average flow of {} in cubic metres per second? | How much water does {} carry, in cubic metres per second?",
    unit="m³/s",
)
_add(
    "river_basin",
    "number",
    "the drainage basin of {} | the basin area of {} | the area drained by {} | the size of the catchment of {}",
    "How large is the drainage basin of {}, in square kilometres? | What area does {} drain, in square kilometres? | How many square kilometres does the basin of {} cover? | How many square kilometres does {} drain?",
    unit="km²",
)
_add(
    "river_country",
    "entity",
    "the country through which {} flows | the country of {} | the country that {} crosses | the country in which {} runs its course",
    "Through which country does {} flow? | In which country is {}? | Which country does {} cross? | In which country does {} run its course?",
    object="country",
)
_add(
    "river_settlements",
    "entity",
    "the settlements on {} | the settlements that lie on {} | the places on the banks of {} | the settlements that {} flows through",
    "Which settlements lie on {}? | Which settlements does {} flow through? | What places stand on the banks of {}? | Which settlements does {} pass?",
    object="settlement",
    functional=False,
    single=True,
    inverse="settlement_river",
)
_add(
    "river_tributaries",
    "entity",
    "the tributaries of {} | the rivers that flow into {} | the rivers that join {} | the rivers taken up by {}",
    "Which rivers flow into {}? | What are the tributaries of {}? | Which rivers join {}? | Which rivers are taken up by {}?",
    object="river",
    functional=False,
    single=True,
    inverse="river_into",
)

# Mountains
_add(
    "mountain_height",
    "number",
    "the height of {} | the elevation of {} | the elevation of the summit of {} | how high {} rises",
    "How high is {}, in metres? | What is the height of {} in metres? | What is the elevation of {} in metres? | To how many metres does {} rise?",
    unit="m",
)
_add(
    "mountain_prominence",
    "number",
    "the prominence of {} | the topographic prominence of {} | the prominence of the summit of {} | how far {} stands out above its saddle",
    "What is the prominence of {} in metres? | How large is the prominence of {}, in metres? | What prominence does {} have, in metres? | By how many metres does {} stand out above its saddle?",
    unit="m",
)
_add(
    "mountain_region",
    "entity",
    "the region of {} | the region in which {} rises | the region where {} lies | the region that {} belongs to",
    "In which region does {} rise? | In which region does {} lie? | Which region is {} in? | Of which region is {} a landmark?",
    object="region",
)
_add(
    "mountain_climbed",
    "date",
    "the date of the first ascent of {} | the day {} was first climbed | the date on which {} was first climbed | the day of the first ascent of {}",
    "When was {} first climbed? | On what date was {} first climbed? | What is the date of the first ascent of {}? | On which day did someone first stand on {}?",
)
_add(
    "mountain_climber",
    "entity",
    "the first climber of {} | the person who first climbed {} | the leader of the first ascent of {} | the person who first stood on {}",
    "Who first climbed {}? | Who led the first ascent of {}? | Which person made the first ascent of {}? | Who was the first to stand on {}?",
    object="person",
)
_add(
    "mountain_range",
    "text",
    "the range to which {} belongs | the mountain range of {} | the chain of which {} is a part | the range that {} stands in",
    "To which range does {} belong? | What range is {} part of? | In which mountain range does {} stand? | Of which chain is {} a part?",
)

# Species
_add(
    "species_describer",
    "entity",
    "the person who described {} | the first describer of {} | the naturalist who described {} | the author of the first description of {}",
    "Who first described {}? | Which person described {}? | By whom was {} described? | Who is the author of the first description of {}?",
    object="person",
)
_add(
    "species_described",
    "number",
    "the year in which {} was described | the year of the first description of {} | the year {} became known to science | the year that {} was first written about",
    "In what year was {} first described? | When was {} described? | In which year did {} become known to science? | What is the year of the first description of {}?",
    unit="year",
)
_add(
    "species_length",
    "number",
    "the length of {} | the body length of {} | the length of a grown {} | how long {} grows",
    "How long is {}, in millimetres? | What is the body length of {} in millimetres? | To what length does {} grow, in millimetres? | How many millimetres does {} measure?",
    unit="mm",
)
_add(
    "species_mass",
    "number",
    "the mass of {} | the weight of {} | the mass of a grown {} | how heavy {} grows",
    "How heavy is {}, in grams? | What is the mass of {} in grams? | How many grams does {} weigh? | What weight does {} reach, in grams?",
    unit="g",
)
_add(
    "species_region",
    "entity",
    "the native region of {} | the region to which {} is native | the home region of {} | the only region where {} lives",
    "To which region is {} native? | In which region is {} found? | What is the native region of {}? | Which region is the only home of {}?",
    object="region",
)
_add(
    "species_prey",
    "entity",
    "the main prey of {} | the species that {} feeds on | the chief food of {} | the species that {} hunts",
    "Which species does {} feed on? | What is the main prey of {}? | Which species does {} hunt? | On which species does {} live?",
    object="species",
)
_add(
    "species_predators",
    "entity",
    "the predators of {} | the species that feed on {} | the enemies of {} | the species that hunt {}",
    "Which species feed on {}? | What are the predators of {}? | Which species hunt {}? | For which species is {} the main prey?",
    object="species",
    functional=False,
    single=True,
    inverse="species_prey",
)
_add(
    "species_gestation",
    "number",
    "the brooding time of {} | the time {} broods or carries its young | the brooding period of {} | the number of days {} takes to bear its young",
    "How many days does {} brood or carry its young? | What is the brooding time of {} in days? | How long is the brooding period of {}, in days? | How many days does it take {} to bear its young?",
    unit="days",
)
_add(
    "species_habitat",
    "text",
    "the habitat of {} | the preferred habitat of {} | the kind of land in which {} lives | the surroundings that {} keeps to",
    "What is the habitat of {}? | In what kind of habitat does {} live? | Which habitat does {} prefer? | To what kind of surroundings does {} keep?",
    vocabulary=vocabulary.HABITATS,
)

# Institutions
_add(
    "institution_founded",
    "number",
    "the year in which {} was founded | the founding year of {} | the year of foundation of {} | the year {} opened its doors",
    "In what year was {} founded? | When was {} founded? | In which year was {} established? | In what year did {} open its doors?",
    unit="year",
)
_add(
    "institution_founder",
    "entity",
    "the founder of {} | the person who founded {} | the person who established {} | the person who set up {}",
    "Who founded {}? | Who was the founder of {}? | Which person established {}? | By whom was {} set up?",
    object="person",
)
_add(
    "institution_seat",
    "entity",
    "the seat of {} | the place where {} is based | the home town of {} | the settlement that houses {}",
    "Where is {} based? | In which settlement is {}? | Where does {} have its seat? | Which settlement houses {}?",
    object="settlement",
)
_add(
    "institution_head",
    "entity",
    "the head of {} | the person who heads {} | the current head of {} | the person in charge of {}",
    "Who heads {}? | Who is the head of {}? | Which person is at the head of {}? | Who is in charge of {}?",
    object="person",
    single=True,
)
_add(
    "institution_members",
    "number",
    "the number of people at {} | the membership of {} | the number of people who belong to {} | the headcount of {}",
    "How many people belong to {}? | How many people are there at {}? | How large is the membership of {}? | What is the headcount of {}?",
)
_add(
    "institution_rival",
    "entity",
    "the rival of {} | the old rival of {} | the institution that is the rival of {} | the institution with which {} competes",
    "Which institution is the rival of {}? | What is the rival of {}? | With which institution does {} compete? | Against which institution does {} measure itself?",
    object="institution",
    single=True,
)
_add(
    "institution_emblem",
    "text",
    "the emblem of {} | the device of {} | the sign of {} | what {} has for an emblem",
    "What is the emblem of {}? | What does {} have for an emblem? | What is shown on the emblem of {}? | Under what sign does {} appear?",
    vocabulary=vocabulary.EMBLEMS,
)
_add(
    "institution_alumni",
    "entity",
    "the alumni of {} | the people who studied at {} | the former students of {} | the graduates of {}",
    "Who studied at {}? | Which people attended {}? | Who are the alumni of {}? | Which people are graduates of {}?",
    object="person",
    functional=False,
    single=True,
    inverse="person_university",
)
_add(
    "institution_staff",
    "entity",
    "the people who worked for {} | the people employed by {} | the staff of {} | the people who held posts at {}",
    "Which people worked for {}? | Who held a post at {}? | Whom did {} employ? | Who was on the staff of {}?",
    object="person",
    functional=False,
    single=True,
    inverse="person_employer",
)

# Works
_add(
    "work_creator",
    "entity",
    "the creator of {} | the author of {} | the person who made {} | the person behind {}",
    "Who created {}? | By whom is {}? | Which person made {}? | Who is the author of {}?",
    object="person",
)
_add(
    "work_year",
    "number",
    "the year of {} | the year in which {} first appeared | the year {} was presented | the year {} came before the public",
    "In what year did {} first appear? | When was {} first presented? | From which year is {}? | In what year did {} come before the public?",
    unit="year",
)
_add(
    "work_setting",
    "entity",
    "the setting of {} | the place in which {} is set | the settlement that {} shows | the scene of {}",
    "Where is {} set? | In which settlement is {} set? | Which settlement does {} show? | Which settlement is the scene of {}?",
    object="settlement",
)
_add(
    "work_premiere",
    "entity",
    "the place where {} was first presented | the place of the first presentation of {} | the settlement that first saw {} | the settlement in which {} had its first showing",
    "Where was {} first presented? | In which settlement was {} first presented? | Where did {} have its first showing? | Which settlement was the first to see {}?",
    object="settlement",
)
_add(
    "work_dedicatee",
    "entity",
    "the person to whom {} is dedicated | the dedicatee of {} | the person named in the dedication of {} | the person honoured by the dedication of {}",
    "To whom is {} dedicated? | Who is the dedicatee of {}? | Whom does the dedication of {} name? | Which person is honoured by the dedication of {}?",
    object="person",
)
_add(
    "work_model",
    "entity",
    "the earlier work on which {} is based | the work that {} draws on | the model of {} | the work from which {} takes its story",
    "On which earlier work is {} based? | Which work does {} draw on? | What work was the model of {}? | From which work does {} take its story?",
    object="work",
)
_add(
    "work_descendants",
    "entity",
    "the works based on {} | the later works that draw on {} | the works that follow {} | the works for which {} was the model",
    "Which works are based on {}? | Which later works draw on {}? | What works follow {}? | For which works was {} the model?",
    object="work",
    functional=False,
    single=True,
    inverse="work_model",
)
_add(
    "work_owner",
    "entity",
    "the institution that keeps {} | the owner of {} | the keeper of the original of {} | the institution that holds the original of {}",
    "Which institution keeps {}? | Who owns the original of {}? | Where is the original of {} kept? | Which institution holds {}?",
    object="institution",
)
_add(
    "work_form",
    "text",
    "the form of {} | the kind of work that {} is | the genre of {} | what {} is, as a work",
    "What kind of work is {}? | What form does {} have? | What is the genre of {}? | As what sort of work is {} classed?",
    vocabulary=vocabulary.FORMS,
)
_add(
    "work_theme",
    "text",
    "the theme of {} | the subject of {} | the main theme of {} | what {} is about",
    "What is the theme of {}? | What is {} about? | What is the main subject of {}? | With what does {} deal?",
    vocabulary=vocabulary.THEMES,
)

# Events
_add(
    "event_date",
    "date",
    "the date of {} | the day of {} | the date on which {} began | the day on which {} began",
    "When did {} begin? | On what date did {} begin? | What is the date of {}? | On which day did {} begin?",
)
_add(
    "event_place",
    "entity",
    "the place of {} | the settlement where {} took place | the site of {} | the settlement at which {} was held",
    "Where did {} take place? | At which settlement did {} take place? | What was the site of {}? | Which settlement saw {}?",
    object="settlement",
)
_add(
    "event_leader",
    "entity",
    "the leading figure of {} | the person who led {} | the chief figure of {} | the person who was foremost in {}",
    "Who was the leading figure of {}? | Who led {}? | Who was the chief figure of {}? | Which person was foremost in {}?",
    object="person",
)
_add(
    "event_opponent",
    "entity",
    "the opponent of the leading figure of {} | the leader of the other side in {} | the opposing leader in {} | the person at the head of the other side in {}",
    "Who led the other side in {}? | Who was the opposing leader in {}? | Who opposed the leading figure of {}? | Which person was at the head of the other side in {}?",
    object="person",
)
_add(
    "event_attendance",
    "number",
    "the number of people who took part in {} | the number of participants of {} | the number of people in {} | the number of those present at {}",
    "How many people took part in {}? | What was the number of participants of {}? | How many people were involved in {}? | How many were present at {}?",
)
_add(
    "event_days",
    "number",
    "the length of {} in days | the number of days {} lasted | the duration of {} | how many days {} went on for",
    "How many days did {} last? | How long did {} last, in days? | What was the duration of {} in days? | For how many days did {} go on?",
    unit="days",
)
_add(
    "event_before",
    "entity",
    "the event that led to {} | the event from which {} arose | the earlier event behind {} | the event that brought about {}",
    "Which event led to {}? | From which event did {} arise? | Which earlier event was the cause of {}? | Which event brought about {}?",
    object="event",
)
_add(
    "event_after",
    "entity",
    "the events that arose from {} | the events that {} led to | the events brought about by {} | the later events caused by {}",
    "Which events arose from {}? | To which events did {} lead? | Which later events did {} cause? | Which events did {} bring about?",
    object="event",
    functional=False,
    single=True,
    inverse="event_before",
)
_add(
    "event_cause",
    "text",
    "the matter at issue in {} | the matter behind {} | what {} was about | the matter over which {} came about",
    "What was {} about? | What was the matter at issue in {}? | What matter lay behind {}? | Over what matter did {} come about?",
    vocabulary=vocabulary.CAUSES,
)

# Ships
_add(
    "ship_launched",
    "date",
    "the launch date of {} | the day {} was launched | the date on which {} was launched | the day {} first touched the water",
    "When was {} launched? | On what date was {} launched? | What is the launch date of {}? | On which day did {} first touch the water?",
)
_add(
    "ship_builder",
    "entity",
    "the builder of {} | the institution that built {} | the yard that built {} | the firm that built {}",
    "Which institution built {}? | What was the builder of {}? | By which institution was {} built? | Which firm built {}?",
    object="institution",
)
_add(
    "ship_port",
    "entity",
    "the home port of {} | the port of registry of {} | the place where {} was registered | the settlement to which {} belonged as a ship",
    "What was the home port of {}? | Where was {} registered? | Which settlement was the home port of {}? | To which port did {} belong?",
    object="settlement",
)
_add(
    "ship_captain",
    "entity",
    "the first captain of {} | the person who first commanded {} | the first commander of {} | the person first put in command of {}",
    "Who was the first captain of {}? | Who first commanded {}? | Which person was the first captain of {}? | Who was first put in command of {}?",
    object="person",
)
_add(
    "ship_length",
    "number",
    "the length of {} | the overall length of {} | the length of the hull of {} | the length of {} from stem to stern",
    "How long was {}, in metres? | What was the length of {} in metres? | What was the overall length of {} in metres? | How many metres did {} measure from stem to stern?",
    unit="m",
)
_add(
    "ship_tonnage",
    "number",
    "the displacement of {} | the displacement of {} in tonnes | the tonnage of {} | the weight of water that {} displaced",
    "What was the displacement of {} in tonnes? | How many tonnes did {} displace? | What was the tonnage of {}, in tonnes? | How many tonnes of water did {} displace?",
    unit="t",
)
_add(
    "ship_crew",
    "number",
    "the crew of {} | the number of people in the crew of {} | the size of the crew of {} | the number of hands aboard {}",
    "How many people were in the crew of {}? | How large was the crew of {}? | What was the size of the crew of {}? | How many hands did {} carry?",
)
_add(
    "ship_retired",
    "number",
    "the year in which {} was taken out of service | the last year of service of {} | the year of retirement of {} | the year {} was laid up for good",
    "In what year was {} taken out of service? | When was {} retired? | In which year did {} end its service? | In what year was {} laid up for good?",
    unit="year",
)
_add(
    "ship_cargo",
    "text",
    "the usual cargo of {} | the cargo that {} carried | the goods that {} carried | what {} usually had in its hold",
    "What was the usual cargo of {}? | What cargo did {} carry? | Which goods did {} usually carry? | What did {} usually have in its hold?",
    vocabulary=vocabulary.CARGOES,
)

RELATIONS: dict[str, Relation] = {name: fact.relation for name, fact in FACTS.items()}
