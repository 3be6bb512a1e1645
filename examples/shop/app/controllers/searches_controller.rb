class SearchesController < ApplicationController
  def show
    @query = params[:q].to_s
    # Without the categories and the numbers sold: the view asks for them one
    # product at a time, as a careless one does.
    @products = @query.blank? ? Product.none : Product.matching(@query).sorted(params[:sort]).limit(Product::PAGE)
  end
end
