# frozen_string_literal: true

module Pitwall
  module Show
    # A palette without colours: answers what Pastel answers, for files and tests.
    module Plain
      %i[bold dim red yellow green cyan].each { |style| define_singleton_method(style) { |text| text } }
    end
  end
end
