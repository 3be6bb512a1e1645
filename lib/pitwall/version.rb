# frozen_string_literal: true

module Pitwall
  VERSION = "0.1.0"
end
