# frozen_string_literal: true

require "pitwall/analyse/findings/garbage"
require "pitwall/analyse/findings/heavy_code"
require "pitwall/analyse/findings/objects"
require "pitwall/analyse/findings/queries"
require "pitwall/analyse/findings/served"
require "pitwall/analyse/findings/tests"
require "pitwall/analyse/findings/waiting"
